/** Why the child server does not start, in an operator's words. Pure. */
import { join } from 'node:path'
import { logFile, type ServerConfiguration } from './configuration.ts'

/** `taken`: what another process has. The same start may succeed a moment later. */
export class ServerStartError extends Error {
  override name = 'ServerStartError'
  readonly taken: 'directory' | 'port' | undefined

  constructor(message: string, taken?: 'directory' | 'port') {
    super(message)
    this.taken = taken
  }
}

export function logPath({ filesDirectory }: ServerConfiguration): string {
  return join(filesDirectory, logFile)
}

/** `said`: its stderr; `logged`: what this start wrote to the log; `end`: how the process ended. */
export function startErrorOf(
  { said, logged, end }: { said: string; logged: string; end: string },
  configuration: ServerConfiguration,
): ServerStartError {
  const { dataDirectory, httpPort, nativePort } = configuration
  const words = exceptionOf(said) ?? exceptionOf(logged) ?? (said || end)
  if (/Another server instance in same directory is already running/.test(words)) {
    return new ServerStartError(`another ClickHouse uses ${dataDirectory}`, 'directory')
  }
  if (/Address already in use/.test(words)) {
    const [, port] = /Address already in use: 127\.0\.0\.1:(\d+)/.exec(words) ?? []
    return new ServerStartError(`port ${port ?? `${httpPort} or ${nativePort}`} is taken`, 'port')
  }
  if (/MODULE_NOT_FOUND|libchdb|ffi-rs|CANNOT_FIND_LIBCHDB/i.test(words)) {
    return new ServerStartError(
      `ClickHouse's library cannot be loaded on ${process.platform} ${process.arch}; it is available for Linux with glibc ` +
        `and macOS, on x64 and arm64 (npm ci installs it; the image has none: it is for the distributed form): ${words.slice(0, 500)}`,
    )
  }
  // Its log names the part, some moments later.
  const [, table] = /Load job 'load table ([^\s']+)' failed: Code: 231\b/.exec(`${said} ${logged}`) ?? []
  if (table !== undefined) {
    return new ServerStartError(
      `ClickHouse does not start, because a part of the table ${table} cannot be read (named in ${logPath(configuration)}). ${afterLoss(dataDirectory)}`,
    )
  }
  return new ServerStartError(
    `ClickHouse does not start: ${words.slice(0, 1_000)}; its log is ${logPath(configuration)}`,
  )
}

/** What to do if rows of a data directory cannot be read. */
export function afterLoss(dataDirectory: string): string {
  return (
    `No event is lost. Restore ${dataDirectory} from a backup, or move it away and start again: the tables are then filled from the ` +
    'event log, without the history and the usage of keys'
  )
}

/** The useful part of ClickHouse's first exception; `undefined` if no statement failed. */
export function exceptionOf(text: string): string | undefined {
  return /Code: \d+\. .*?(?= \(version |, Stack trace |\n|$)/.exec(text)?.[0]
}
