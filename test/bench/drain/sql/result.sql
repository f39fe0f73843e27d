SELECT count(*), count(*) FILTER (WHERE state = 6 AND published_at IS NOT NULL),
       count(*) FILTER (WHERE attempt_count > 0), max(published_at)
  FROM {table}
