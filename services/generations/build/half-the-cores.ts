/**
 * Tables whose statements use at most half of ClickHouse's cores. A rebuild folds and verifies for as long as it takes, and the
 * API's queries need a core without waiting for it.
 */
import type { CallOptions, Tables } from '../../tables/port.ts'

/** Asks ClickHouse for its cores once. Throws what the tables throw. */
export async function onHalfTheCores(tables: Tables): Promise<Tables> {
  // The default of `max_threads` is the number of cores that the server may use.
  const [row] = await tables.rows<{ cores: number }>({
    query: "SELECT toUInt32(getSetting('max_threads')) AS cores",
  })
  const threadsMax = Math.max(1, Math.floor((row?.cores ?? 1) / 2))
  const bounded = (options?: CallOptions): CallOptions => ({ threadsMax, ...options })
  return {
    rows: (statement, options) => tables.rows(statement, bounded(options)),
    run: (statement, options) => tables.run(statement, bounded(options)),
    insert: (insert, options) => tables.insert(insert, options),
    close: () => tables.close(),
  }
}
