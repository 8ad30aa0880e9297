import { describe, expect, test } from 'vitest'
import { hasFailed, logPath, startErrorOf } from '../../../services/clickhouse-server/start-error.ts'

const where = {
  dataDirectory: '/data/tables',
  filesDirectory: '/data/clickhouse',
  httpPort: 8_123,
  nativePort: 9_000,
}
const nothing = { said: '', logged: '', end: 'signal SIGKILL' }
const version = '(version 26.7.2.1)'

describe('a start that failed', () => {
  test('may succeed a moment later if another server holds the directory', () => {
    const said = `Code: 76. DB::Exception: Cannot lock file /data/tables/status. Another server instance in same directory is already running. (CANNOT_OPEN_FILE) ${version}`
    expect(startErrorOf({ ...nothing, said }, where)).toMatchObject({
      message: 'another ClickHouse uses /data/tables',
      isPassing: true,
      isPortTaken: false,
    })
  })

  test.each([
    ['it was said', ': 127.0.0.1:9000', 'port 9000 is taken', 9_000],
    ['it was not said', '', 'port 8123 or 9000 is taken', undefined],
  ])('names the port that is taken, if %s', (_, place, message, port) => {
    const said = `Code: 210. DB::NetException: Address already in use${place} (NETWORK_ERROR) ${version}`
    const error = startErrorOf({ ...nothing, said }, where)
    expect(error).toMatchObject({ message, isPassing: true, isPortTaken: true })
    expect(error.port).toBe(port)
  })

  test('takes the cause from the log if nothing was said', () => {
    const logged = `2026.01.01 00:00:00 [ 1 ] {} <Error> Application: Code: 210. DB::Exception: Address already in use: 127.0.0.1:8123 (NETWORK_ERROR) ${version}\n`
    expect(startErrorOf({ ...nothing, logged }, where)).toMatchObject({
      message: 'port 8123 is taken',
      port: 8_123,
    })
  })

  test('says which part of which table cannot be read, and how to go on, and is for good', () => {
    const path = '/data/tables/store/0a/0a1b/all_1_1_0'
    const reason = `Code: 32. DB::Exception: Attempt to read after eof. (ATTEMPT_TO_READ_AFTER_EOF) ${version}, Stack trace (when copying): 0. a 1. b`
    const logged = [
      `<Error> pledgeview_read_1.campaigns (0a1b): Part ${path} is broken and needs manual correction. Reason: ${reason}`,
      `<Error> Application: Code: 231. DB::Exception: Suspiciously many broken parts. (TOO_MANY_UNEXPECTED_DATA_PARTS) ${version}`,
    ].join('\n')
    const { message, isPassing } = startErrorOf({ ...nothing, logged }, where)
    expect(isPassing).toBe(false)
    for (const word of [
      'pledgeview_read_1.campaigns',
      path,
      'Attempt to read after eof',
      'pledgeview rebuild',
    ]) {
      expect(message).toContain(word)
    }
    expect(message).not.toMatch(/Stack trace|Code:/)
  })

  test('names the table and the remedy even if ClickHouse ended before its log named the part', () => {
    const said =
      "Code: 722. DB::Exception: Waited job failed: Code: 695. DB::Exception: Load job 'load table pledgeview_ledger_1.pledge_ledger' " +
      `failed: Code: 231. DB::Exception: Suspiciously many broken parts. (TOO_MANY_UNEXPECTED_DATA_PARTS) ${version}`
    const { message } = startErrorOf({ ...nothing, said }, where)
    for (const word of [
      'a part of the table pledgeview_ledger_1.pledge_ledger',
      logPath(where),
      'pledgeview rebuild',
    ]) {
      expect(message).toContain(word)
    }
  })

  test('of a cause that nobody knows has ClickHouse’s words, in bounds, and where the log is', () => {
    const said = `Code: 1. DB::Exception: ${'strange '.repeat(500)}`
    const { message, isPassing } = startErrorOf({ ...nothing, said }, where)
    expect(isPassing).toBe(false)
    expect(message).toContain('ClickHouse does not start: Code: 1. DB::Exception: strange')
    expect(message).toContain(logPath(where))
    expect(message.length).toBeLessThan(1_200)
    expect(startErrorOf(nothing, where).message).toContain('signal SIGKILL')
  })
})

describe('the session', () => {
  test.each([
    ['', false],
    ['a warning', false],
    [`Code: 497. DB::Exception: default: Not enough privileges. (ACCESS_DENIED) ${version}`, true],
  ])('has failed as soon as it says an exception: %j, %s', (said, failed) => {
    expect(hasFailed(said)).toBe(failed)
  })
})
