/**
 * Blocks ClickHouse's outgoing TCP connections, if the system has Landlock rules for TCP (Linux 6.7 and later).
 *
 * ClickHouse does not check the settings of a subquery. One of them is the address of a schema registry. So any user could
 * make ClickHouse send requests to addresses that only this machine reaches. No setting of the server prevents that
 * (test/integration/clickhouse-server/analyst-rights.test.ts).
 *
 * Source: Linux, `Documentation/userspace-api/landlock.rst` and `include/uapi/linux/landlock.h`.
 */
import { DataType, load, open } from 'ffi-rs'

const library = 'libc'
// The same numbers on x64 and arm64.
const createRuleset = 444
const addRule = 445
const restrictSelf = 446
const askVersion = 1
const versionMin = 4
const connectTcp = 2n
const rulesetBytes = 16
const ofPort = 2
const setNoNewPrivileges = 38

/** Whether the system supports it. */
export function canRefuseCalls(): boolean {
  if (process.platform !== 'linux') return false
  open({ library, path: 'libc.so.6' })
  return call('syscall', createRuleset, 0, 0, askVersion) >= versionMin
}

/** From now on, this thread and the threads that it starts can connect to this port only. They can listen on any port. */
export function refuseCalls(portAllowed: number): void {
  const ruleset = call('syscall', createRuleset, words(0n, connectTcp), rulesetBytes, 0)
  const isDone =
    ruleset >= 0 &&
    call('syscall', addRule, ruleset, ofPort, words(connectTcp, BigInt(portAllowed)), 0) === 0 &&
    call('prctl', setNoNewPrivileges, 1, 0, 0, 0) === 0 &&
    call('syscall', restrictSelf, ruleset, 0) === 0
  if (!isDone) throw new Error('Landlock refuses its rules')
}

function words(...values: bigint[]): Buffer {
  return Buffer.from(BigUint64Array.from(values).buffer)
}

function call(funcName: string, ...paramsValue: (number | Buffer)[]): number {
  return load({
    library,
    funcName,
    retType: DataType.I64,
    paramsType: paramsValue.map(value => (typeof value === 'number' ? DataType.I64 : DataType.U8Array)),
    paramsValue,
  })
}
