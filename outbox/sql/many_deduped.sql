SELECT {schema}.outbox_emit_all_or_none($1::text::uuid[], $2::text::text[], $3::text::text[], $4::text::text[],
                                        $5::text::text[], $6::text::text[], $7::text::text[], $8::text::bytea[],
                                        $9::text::boolean[], $10::text::text[], $11::text::text[])
