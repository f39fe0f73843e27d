-- Whether a request is open, of whatever lane.
SELECT EXISTS (SELECT FROM {schema}.outbox_requests
                WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL)
