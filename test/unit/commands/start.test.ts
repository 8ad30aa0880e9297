/** What `npm start` prints to paste, and which flags it refuses. */
import { expect, test } from 'vitest'
import { runHere } from '../../support/deployment/run-here.ts'

test('--unkind without the demo is refused', async () => {
  const stderr = expect.stringContaining('--unkind needs the demo: give it without --no-demo')
  expect(await runHere(['start', '--unkind', '--no-demo'])).toMatchObject({ code: 2, stderr })
})
