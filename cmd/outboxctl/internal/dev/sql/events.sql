-- Whether there is an event in any state.
SELECT EXISTS (SELECT FROM {schema}.outbox_events)
