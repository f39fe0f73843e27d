SELECT count(*), count(published_at), 0, max(published_at) FROM {table}
