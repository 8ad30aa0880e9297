/** kcat, a Kafka client that shares no code with ours. */
import { spawnSync } from 'node:child_process'
import { runForBytes } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

export const kcatProgram: Requirement = {
  isMet: spawnSync('kcat', ['-V']).status === 0,
  reason: 'kcat is not installed (apt-get install kcat)',
}

/** Runs kcat to its end, and returns its output as text. Throws if it failed. */
export async function kcat(args: readonly string[], stdin = ''): Promise<string> {
  return (await kcatBytes(args, stdin)).toString()
}

/** The same, with the output as bytes: message values are not text. */
export async function kcatBytes(args: readonly string[], stdin = ''): Promise<Buffer> {
  const { code, stdout, stderr } = await runForBytes('kcat', args, { stdin, msMax: Infinity })
  if (code !== 0) throw new Error(`kcat ended with ${code}: ${stderr}`)
  return stdout
}
