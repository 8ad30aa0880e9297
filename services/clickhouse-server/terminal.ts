/**
 * A pseudo-terminal as stdin, without a person at it.
 *
 * ClickHouse is called as a command line tool. Such a tool ends when anything unexpected happens on one of its
 * threads, for example when a connection breaks at a bad moment or a password in the native protocol is wrong. With a
 * terminal and `--interactive` it continues, as a server does (test/integration/clickhouse-server/ports.test.ts).
 *
 * Source: ClickHouse, `programs/local/LocalServer.cpp` (KillingErrorHandler); POSIX, posix_openpt.
 */
import { constants, openSync } from 'node:fs'
import { DataType, load, open } from 'ffi-rs'

const library = 'libc'
const libraryPath = process.platform === 'darwin' ? '/usr/lib/libSystem.B.dylib' : 'libc.so.6'
const stdin = 0

/** Replaces stdin with a terminal. Returns the descriptor that the old stdin has now. */
export function takeTerminal(): number {
  open({ library, path: libraryPath })
  const before = call('dup', stdin)
  // It must not become the controlling terminal, which could send signals.
  const flags = constants.O_RDWR | constants.O_NOCTTY
  const master = call('posix_openpt', flags)
  call('grantpt', master)
  call('unlockpt', master)
  const name = load({
    library,
    funcName: 'ptsname',
    retType: DataType.String,
    paramsType: [DataType.I32],
    paramsValue: [master],
  })
  call('dup2', openSync(name, flags), stdin)
  return before
}

function call(funcName: string, ...paramsValue: number[]): number {
  const result = load({
    library,
    funcName,
    retType: DataType.I32,
    paramsType: paramsValue.map(() => DataType.I32),
    paramsValue,
  })
  if (result < 0) throw new Error(`no terminal could be opened: ${funcName} failed`)
  return result
}
