/**
 * Runs Schemathesis, an independent tool. It reads an OpenAPI document and sends requests that the document allows or
 * forbids to the service. It is installed from PyPI into a virtual environment in the cache directory.
 *
 * It is an optional requirement: if Python, its venv module or the network is missing, the suite prints the reason.
 */
import { fileURLToPath } from 'node:url'
import { pythonEnvironment } from '../clients/programs.ts'
import { run } from '../support/runner/programs.ts'

const requirements = fileURLToPath(new URL('requirements.txt', import.meta.url))
const environment = pythonEnvironment('schemathesis', requirements)
// It takes up to 70 s beside other suites. Only a hang takes this long.
const runMsMax = 400_000

export interface FuzzTarget {
  /** The address of the OpenAPI document. */
  documentUrl: string
  /** The base address, including `/api/v1`. */
  apiUrl: string
  key: string
  secret: string
  /** A directory for its files. */
  directory: string
}

/** Installs the tool if it is missing. */
export const schemathesisRequirement = environment.requirement

/**
 * Tests the API with all checks, with up to `examplesMax` requests per operation and phase, chosen by the seed. `code`
 * is 0 if nothing was found, and null if the tool took longer than `runMsMax`.
 */
export async function runSchemathesis(
  { documentUrl, apiUrl, key, secret, directory }: FuzzTarget,
  { seed, examplesMax }: { seed: number; examplesMax: number },
): Promise<{ code: number | null; output: string }> {
  const { code, stdout, stderr } = await run(
    environment.program('schemathesis'),
    [
      ...['run', documentUrl, '--url', apiUrl, '--header', `Authorization: Bearer ${key}:${secret}`],
      ...[
        '--seed',
        String(seed),
        '--max-examples',
        String(examplesMax),
        '--continue-on-failure',
        '--no-color',
      ],
    ],
    { cwd: directory, msMax: runMsMax },
  )
  return { code, output: stdout + stderr }
}
