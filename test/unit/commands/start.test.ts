/** What `npm start` prints to paste, and which flags it refuses. */
import { expect, test } from 'vitest'
import { keyHint } from '../../../services/commands/start.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { runHere } from '../../support/deployment/run-here.ts'

test.each([
  ['.pledgeview', {}, ''],
  ['.pledgeview', { PLEDGEVIEW_KAFKA_BROKERS: 'kafka:9092' }, ' --data-dir .pledgeview'],
  ['/data/own', {}, ' --data-dir /data/own'],
  ["it's my own", {}, " --data-dir 'it'\\''s my own'"],
])(
  'the line for a key leads to the data directory %s, whatever the shell has set',
  (directory, set, where) => {
    expect(keyHint(directory, readConfig(set))).toMatch(new RegExp(`--email \\S+${RegExp.escape(where)}\n$`))
  },
)

test('--unkind without the demo is refused', async () => {
  const stderr = expect.stringContaining('--unkind needs the demo: give it without --no-demo')
  expect(await runHere(['start', '--unkind', '--no-demo'])).toMatchObject({ code: 2, stderr })
})
