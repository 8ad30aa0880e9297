/** The docker command line. */
import { outputOf, type RunOptions } from '../runner/programs.ts'

/** Runs `docker` with these arguments. Throws with its output if it fails; resolves with its stdout. */
export async function docker(args: readonly string[], options?: RunOptions): Promise<string> {
  return (await outputOf('docker', args, options)).trim()
}
