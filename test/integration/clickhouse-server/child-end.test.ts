/** Proves that ClickHouse's server ends with its parent, however the parent ends, and not earlier. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import {
  askClickHouse,
  type ClickHouseAddress,
  startClickHouse,
} from '../../support/clickhouse/clickhouse.ts'
import type { Told } from '../../support/clickhouse/clickhouse-parent.ts'
import { isRunning, processesWith, procFileSystem, whenGone } from '../../support/runner/processes.ts'
import { needs } from '../../support/runner/requirements.ts'

const script = fileURLToPath(new URL('../../support/clickhouse/clickhouse-parent.ts', import.meta.url))

describe('ClickHouse’s server', () => {
  let directory: string
  let parent: ChildProcess

  beforeEach(context => {
    needs(context, procFileSystem)
    directory = mkdtempSync(join(tmpdir(), 'pledgeview-parent-'))
    // A separate process group, like a command that is started in a terminal.
    parent = fork(script, [directory], {
      detached: true,
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
  })

  afterEach(async () => {
    parent.kill('SIGKILL')
    await vi.waitFor(() => expect(processesWith(directory)).toEqual([]), { timeout: 30_000 })
    rmSync(directory, { recursive: true, force: true })
  })

  test.each([
    ['is killed', () => parent.kill('SIGKILL')],
    ['gets SIGINT with its group', () => process.kill(-(parent.pid ?? 0), 'SIGINT')],
    ['exits without closing it', () => parent.send('exit')],
  ])(
    'ends when its parent %s, and releases the directory with all acknowledged rows',
    async (_, endParent) => {
      const { address, pid } = await started()
      await askClickHouse(address, 'CREATE TABLE kept (n UInt8) ENGINE = MergeTree ORDER BY n')
      await askClickHouse(address, 'INSERT INTO kept SELECT 1 SETTINGS async_insert = 0')
      expect(isRunning(pid)).toBe(true)
      endParent()
      await whenGone(pid)
      const next = await startClickHouse({ directory })
      expect(await askClickHouse(next, 'SELECT n FROM kept')).toBe('1\n')
      await next.stop()
    },
  )

  test('ends when its parent is killed while another child of the parent keeps running', async () => {
    const { pid } = await started()
    const { otherChild = 0 } = await answerTo('other child')
    try {
      parent.kill('SIGKILL')
      await whenGone(pid)
      expect(isRunning(otherChild)).toBe(true)
    } finally {
      process.kill(otherChild, 'SIGKILL')
    }
  })

  test('ends when its parent is killed before it answers', async () => {
    const child = await vi.waitUntil(() => processesWith(join(directory, 'clickhouse', 'config.xml'))[0], {
      timeout: 30_000,
      interval: 1,
    })
    parent.kill('SIGKILL')
    await whenGone(child)
  })

  test('keeps running when its parent, with its process group, gets SIGINT', async () => {
    const { address, pid } = await started()
    await answerTo('ignore')
    const told = next()
    process.kill(-(parent.pid ?? 0), 'SIGINT')
    expect(await told).toEqual({ signal: 'SIGINT' })
    expect(await askClickHouse(address, 'SELECT 1')).toBe('1\n')
    expect(isRunning(pid)).toBe(true)
  })

  test('keeps running when it gets SIGTERM, as from systemd, because its parent still needs it', async () => {
    const { address, pid } = await started()
    process.kill(pid, 'SIGTERM')
    // The signal is handled beside the statement.
    expect(await askClickHouse(address, 'SELECT sleep(0.5)')).toBe('0\n')
    expect(isRunning(pid)).toBe(true)
  })

  async function started(): Promise<{ address: ClickHouseAddress; pid: number }> {
    const { url = '', user = '', password = '', pid = 0 } = await next()
    return { address: { url, user, password }, pid }
  }

  function answerTo(message: string): Promise<Told> {
    const answer = next()
    parent.send(message)
    return answer
  }

  /** The parent's next message. Rejects if it ends first. */
  async function next(): Promise<Told> {
    const abort = new AbortController()
    const ended = once(parent, 'exit', { signal: abort.signal }).then(() => {
      throw new Error('the parent ended before it said anything')
    })
    try {
      const [told] = (await Promise.race([once(parent, 'message'), ended])) as [Told]
      return told
    } finally {
      abort.abort()
      ended.catch(() => {})
    }
  }
})
