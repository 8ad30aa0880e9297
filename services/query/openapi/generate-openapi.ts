/**
 * Writes the OpenAPI document of the contract (contracts/api/openapi.json). With `--check` it only checks that the document is up to date, and
 * exits 1 if it is out of date or missing.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { buildOpenApi } from './openapi.ts'

const target = new URL('../../../contracts/api/openapi.json', import.meta.url)

/** The text of the document for this version of the program. */
export function openApiText(version: string): string {
  return `${JSON.stringify(buildOpenApi({ version }), null, 2)}\n`
}

/** Writes or checks the document in `file`. Returns the exit code and a message for the user. */
export function generateOpenApi(
  file: URL,
  { version, check }: { version: string; check: boolean },
): { exitCode: number; message: string } {
  const text = openApiText(version)
  const name = fileURLToPath(file)
  const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text
  if (check) {
    return isCurrent
      ? { exitCode: 0, message: `${name} is up to date` }
      : { exitCode: 1, message: `${name} is out of date: run "npm run contracts" and commit the result` }
  }
  if (!isCurrent) writeFileSync(file, text)
  return { exitCode: 0, message: `${name} ${isCurrent ? 'was up to date' : 'written'}` }
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    version: string
  }
  const { exitCode, message } = generateOpenApi(target, { version, check: process.argv.includes('--check') })
  process[exitCode === 0 ? 'stdout' : 'stderr'].write(`${message}\n`)
  process.exitCode = exitCode
}
