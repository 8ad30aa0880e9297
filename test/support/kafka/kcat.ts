/** kcat, a Kafka client that shares no code with ours. */
import { spawnSync } from 'node:child_process'
import { run } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

export const kcatProgram: Requirement = {
  isMet: spawnSync('kcat', ['-V']).status === 0,
  reason: 'kcat is not installed (apt-get install kcat)',
}

/** Runs kcat to its end, and returns its output as text. Throws if it failed. */
export async function kcat(args: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await run('kcat', args, { stdin, msMax: Infinity })
  if (code !== 0) throw new Error(`kcat ended with ${code}: ${stderr}`)
  return stdout
}
