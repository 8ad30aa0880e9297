/**
 * A real schema registry: Apicurio Registry, which also implements Confluent's API, from Maven Central and in memory.
 * This version is the last that runs on Java 17.
 *
 * Its availability is a requirement like any other: without Java, Maven or the network, suites are skipped with the reason.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { keepFolder } from '../runner/keep-folder.ts'
import { cacheFolder, endProgram, fetched, killAtExit, outputOf, requirementOf } from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

const version = '2.6.13.Final'
const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
const unpackGoal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack'
/** The folder in which `apicurioRegistry` puts it. */
export const apicurioFolder = join(cacheFolder, `apicurio-registry-${version}`)
// Only a hang takes this long: it takes some seconds, on a machine that has nothing else to do.
const startMsMax = 150_000
const saidLinesMax = 40

export interface Apicurio {
  /** The address of Confluent's API. */
  url: string
  child: ChildProcess
  close(): Promise<void>
}

/** Downloads it if it is missing. Never rejects: the requirement's reason says what is missing. */
export function apicurioRegistry(): Promise<Requirement> {
  return requirementOf(`Apicurio Registry ${version}`, async () => {
    await outputOf('java', ['-version'])
    await fetchRegistry()
  })
}

/** Starts it, empty, on a loopback port; 0: a free one. Rejects with its output if it does not start. */
export async function startApicurio(port = 0): Promise<Apicurio> {
  const child = spawn(
    'java',
    [
      ...['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1'],
      ...['-Dquarkus.http.host=127.0.0.1', `-Dquarkus.http.port=${port}`],
      ...['-jar', join(apicurioFolder, `apicurio-registry-app-${version}-runner.jar`)],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  killAtExit(child)
  const address = await listening(child).catch(async cause => {
    await endProgram(child)
    throw cause
  })
  const url = `${address}/apis/ccompat/v7`
  // The first answer of a new Java process may take longer than the program waits for an answer.
  await warmUp(url).catch(async cause => {
    await endProgram(child)
    throw cause
  })
  return { url, child, close: () => endProgram(child) }
}

async function warmUp(url: string): Promise<void> {
  for (const path of ['/subjects', '/schemas/ids/1', '/subjects/none/versions/latest']) {
    const answer = await fetch(`${url}${path}`, { signal: AbortSignal.timeout(startMsMax) })
    await answer.text()
  }
}

/** The address that it reports, once it listens. */
async function listening(child: ChildProcess): Promise<string> {
  const said: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const late = setTimeout(() => reject(new Error(`not listening after ${startMsMax} ms`)), startMsMax)
  for (const output of [child.stdout, child.stderr]) {
    if (!output) continue
    // Read to its end, long after the address: otherwise a full pipe would block the process.
    createInterface(output).on('line', line => {
      said.push(line)
      if (said.length > saidLinesMax) said.shift()
      const [, address] = /Listening on: (http:\S+)/.exec(line) ?? []
      if (address !== undefined) resolve(address)
    })
  }
  child.on('exit', code => reject(new Error(`ended with ${code}`)))
  try {
    return await promise
  } catch (cause) {
    throw new Error(`Apicurio Registry did not start:\n${said.join('\n')}`, { cause })
  } finally {
    clearTimeout(late)
  }
}

async function fetchRegistry(): Promise<void> {
  if (existsSync(apicurioFolder)) return
  // Written to a separate folder and renamed, so that an incomplete or parallel download never counts as complete.
  const work = mkdtempSync(join(cacheFolder, 'part-'))
  const part = join(work, 'registry')
  try {
    const parameters = [`-Dartifact=${artifact}`, `-DoutputDirectory=${part}`]
    // Run in the temporary folder: without a project the goal leaves files in its working directory.
    await fetched('mvn', ['--batch-mode', unpackGoal, ...parameters], { cwd: work })
    keepFolder(part, apicurioFolder)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}
