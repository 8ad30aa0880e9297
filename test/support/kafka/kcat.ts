/** kcat, a Kafka client that shares no code with ours. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { buffer, text } from 'node:stream/consumers'
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
  const child = spawn('kcat', args, { stdio: ['pipe', 'pipe', 'pipe'] })
  // If it ends early, its exit code says more than the broken pipe.
  child.stdin.on('error', () => undefined)
  child.stdin.end(stdin)
  const [stdout, stderr, [code]] = await Promise.all([
    buffer(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ])
  if (code !== 0) throw new Error(`kcat ended with ${code}: ${stderr}`)
  return stdout
}
