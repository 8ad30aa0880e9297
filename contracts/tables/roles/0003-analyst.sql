-- The data teams: the views alone, within bounds that keep them from slowing the fold and the API down. The bounds are
-- also the most that a query may ask for itself (1 is the least, since 0 would be no bound); a query that exceeds one
-- fails, and never gives a part of its result. They are set once, so an operator may change them with ALTER ROLE.

CREATE ROLE IF NOT EXISTS pledgeview_analyst
SETTINGS
    max_execution_time = 60 MIN 1 MAX 60,
    timeout_overflow_mode = 'throw' CONST,
    max_memory_usage = 4000000000 MIN 1 MAX 4000000000,
    max_memory_usage_for_user = 8000000000 MIN 1 MAX 8000000000;

GRANT SELECT ON ${views}.* TO pledgeview_analyst;
