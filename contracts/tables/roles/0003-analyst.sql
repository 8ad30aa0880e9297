-- The data teams: only the views, with bounds that keep the worst query from slowing down the projector and the API.
-- A query may change a setting within its range (the minimum is 1, because 0 would mean no bound). A query that
-- exceeds a bound fails. A server that asks other shards sets the two bounds of a result to 0 for them: what they send is not the
-- result. So the rows may be 0, and the bytes, which bound the result then, cannot be changed. The bounds are set once, so an operator may change them with ALTER ROLE: for example the
-- memory to a quarter and a third of what the server has. The range of the time is wide because Grafana asks for five
-- seconds more than its own deadline.
--
-- ClickHouse makes all threads of aggregation_memory_efficient_merge_threads at once, past the bounds on memory and time: on shards,
-- one query with a large number took all of the server's memory.
--
-- What bounds all queries of a user together is the operator's alone: on shards, max_network_bandwidth_for_user = 1 in one query left
-- no answer to any analyst.
--
-- format_avro_schema_registry_url is an address that ClickHouse would send requests to, from within your network.
--
-- os_threads_nice_value_query lets other threads run first. ClickHouse obeys if its process may set priorities
-- (CAP_SYS_NICE). `workload` has an effect if the server has a workload of this name.

CREATE ROLE IF NOT EXISTS pledgeview_analyst
SETTINGS
    max_execution_time = 60 MIN 1 MAX 300,
    max_memory_usage = 4000000000 MIN 1 MAX 4000000000,
    max_memory_usage_for_user = 8000000000 CONST,
    memory_overcommit_ratio_denominator_for_user = 1073741824 CONST,
    max_temporary_data_on_disk_size_for_user = 0 CONST,
    max_network_bandwidth_for_user = 0 CONST,
    max_network_bandwidth_for_all_users = 0 CONST,
    max_threads = 2 MIN 1 MAX 2,
    max_rows_to_read = 10000000000 MIN 1 MAX 10000000000,
    max_result_rows = 10000000 MIN 0 MAX 10000000,
    max_result_bytes = 4000000000 CONST,
    max_concurrent_queries_for_user = 50 CONST,
    cancel_http_readonly_queries_on_client_close = 1 CONST,
    function_sleep_max_microseconds_per_block = 3000000 CONST,
    os_threads_nice_value_query = 19 CONST,
    use_concurrency_control = 1 CONST,
    aggregation_memory_efficient_merge_threads = 0 CONST,
    workload = 'analyst' CONST,
    skip_unavailable_shards = 0 CONST,
    format_avro_schema_registry_url = '' CONST,
    allow_ddl = 0 CONST,
    allow_introspection_functions = 0 CONST;

GRANT SELECT ON ${views}.* TO pledgeview_analyst;
