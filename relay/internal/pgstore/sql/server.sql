SELECT {incarnation}, pg_is_in_recovery()
