SELECT {schema}.outbox_emit_all_or_none(
    string_to_array($1::text, chr(30), '')::uuid[], string_to_array($2::text, chr(30), ''),
    string_to_array($3::text, chr(30), ''), string_to_array($4::text, chr(30), ''),
    string_to_array($5::text, chr(30), ''), string_to_array($6::text, chr(30), ''),
    string_to_array($7::text, chr(30), ''), string_to_array($8::text, chr(30), '')::bytea[],
    string_to_array($9::text, chr(30), '')::boolean[], string_to_array($10::text, chr(30), ''),
    string_to_array($11::text, chr(30), ''))
