import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { UsageError } from '../../../../services/commands/command.ts'
import { rebuildCommand } from '../../../../services/commands/rebuild/rebuild.ts'

const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }

describe('pledgeview rebuild', () => {
  test('refuses an unknown subcommand and an option that a subcommand does not have', async () => {
    await expect(rebuildCommand.run(['forth'], io)).rejects.toThrow('forth is not a rebuild command')
    await expect(rebuildCommand.run(['drop', '--dry-run'], io)).rejects.toThrow('does not take --dry-run')
  })

  test.each(['2026-02-30', '2026-02-29T09:00:00Z', '2026-04-31T10:00+02:00'])(
    'refuses --from-time %s, because the day does not exist',
    async time => {
      const run = rebuildCommand.run(['--from-time', time], io)
      await expect(run).rejects.toThrow(UsageError)
      await expect(run).rejects.toThrow(`--from-time takes a time as 2026-03-01T09:00:00Z, not "${time}"`)
    },
  )
})
