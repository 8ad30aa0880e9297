/** The size of a record, for bounds on what is in memory. */
import type { LogRecord } from './port.ts'

/** The bytes of the key, the value, and all values of the headers. */
export function bytesOf({ key, value, headers, repeatedHeaders }: LogRecord): number {
  let bytes = (key?.length ?? 0) + (value?.length ?? 0)
  for (const name in headers) {
    for (const one of repeatedHeaders?.[name] ?? [headers[name]]) bytes += one?.length ?? 0
  }
  return bytes
}
