import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { runCommand } from '../../../services/commands/command.ts'
import { commands } from '../../../services/commands/commands.ts'
import type { CommandResult } from './service-process.ts'

/** Runs a command of the program in this process: without a process of its own, it takes no time to start. */
export async function runHere(args: string[]): Promise<CommandResult> {
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough() }
  const code = await runCommand(commands, args, io)
  io.stdout.end()
  io.stderr.end()
  return { code, stdout: await text(io.stdout), stderr: await text(io.stderr) }
}
