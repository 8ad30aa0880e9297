/** What `npm start` prints to paste, and which flags it refuses. */
import { PassThrough } from 'node:stream'
import { expect, test } from 'vitest'
import { keyHint, startCommand } from '../../../services/commands/start.ts'
import { readConfig } from '../../../services/runtime/config.ts'

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
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const running = startCommand.run(['--unkind', '--no-demo'], { stdin, stdout, stderr })
  await expect(running).rejects.toThrow('--unkind needs the demo: give it without --no-demo')
})
