/**
 * A real schema registry: Apicurio Registry, which also implements Confluent's API, from Maven Central and in memory.
 * This version is the last that runs on Java 17.
 *
 * Its availability is a requirement like any other: without Java, Maven or the network, suites are skipped with the reason.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { freePort } from '../../../services/runtime/free-port.ts'
import { keepFolder } from '../runner/keep-folder.ts'
import {
  cacheFolder,
  endProgram,
  fetched,
  killAtExit,
  outputOf,
  requirementOf,
  untilAnswers,
} from '../runner/programs.ts'
import type { Requirement } from '../runner/requirements.ts'

const version = '2.6.13.Final'
const artifact = `io.apicurio:apicurio-registry-app:${version}:tar.gz:all`
const unpackGoal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:unpack'
/** The folder in which `apicurioRegistry` puts it. */
export const apicurioFolder = join(cacheFolder, `apicurio-registry-${version}`)

/** Downloads it if it is missing. Never rejects: the requirement's reason says what is missing. */
export function apicurioRegistry(): Promise<Requirement> {
  return requirementOf(`Apicurio Registry ${version}`, async () => {
    await outputOf('java', ['-version'])
    await keepFolder(apicurioFolder, part => {
      const parameters = [`-Dartifact=${artifact}`, `-DoutputDirectory=${part}`]
      // Run in this folder: without a project the goal leaves files in its working directory.
      return fetched('mvn', ['--batch-mode', unpackGoal, ...parameters], { cwd: part })
    })
  })
}

/** Starts it, empty, on a loopback port; by default a free one. Rejects with its output if it does not start. */
export async function startApicurio(given?: number) {
  const port = given ?? (await freePort())
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
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', data => {
      output = (output + data).slice(-4_000)
    })
  const url = `http://127.0.0.1:${port}/apis/ccompat/v7`
  // The first answer of a new Java process may take longer than the program waits for an answer.
  const answers = async () => {
    for (const path of ['/subjects', '/schemas/ids/1', '/subjects/none/versions/latest'])
      await (await fetch(`${url}${path}`)).text()
    return true
  }
  await untilAnswers(child, 'Apicurio Registry', answers, () => output)
  return {
    /** The address of Confluent's API. */
    url,
    child,
    close: () => endProgram(child),
  }
}
