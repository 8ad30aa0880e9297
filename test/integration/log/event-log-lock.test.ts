import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { lockDataDirectory } from '../../../services/log/local/lock.ts'
import { startChild } from './event-log-process.ts'

let parent: string
let directory: string

beforeEach(() => {
  parent = mkdtempSync(join(tmpdir(), 'lock-'))
  directory = join(parent, 'data')
})

afterEach(() => rmSync(parent, { recursive: true }))

test('a data directory that a process holds is refused to others, and free once that process is killed', async () => {
  const holder = startChild('hold', directory)
  await holder.printed(1)
  expect(holder.lines).toEqual(['held'])
  expect(() => lockDataDirectory(directory)).toThrow(`the data directory ${directory} is in use`)
  await holder.kill()
  lockDataDirectory(directory).close()
})

test('a failed attempt of the holder itself does not let others in', async () => {
  const lock = lockDataDirectory(directory)
  expect(() => lockDataDirectory(directory)).toThrow('is in use')
  expect(await answerOf('hold', directory)).toBe('refused')
  lock.close()
  expect(await answerOf('hold', directory)).toBe('held')
})

test('a data directory is made for its owner alone', () => {
  lockDataDirectory(directory).close()
  expect(statSync(directory).mode & 0o777).toBe(0o700)
  expect(statSync(join(directory, 'lock.sqlite')).mode & 0o777).toBe(0o600)
})

async function answerOf(...args: string[]): Promise<string | undefined> {
  const child = startChild(...args)
  await child.printed(1)
  await child.kill()
  return child.lines[0]
}
