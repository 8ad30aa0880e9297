/**
 * The balancer of docker-compose.yml on the loopback: its own configuration in Debian's HAProxy, with other ports, and with a DNS
 * server of the test in place of the engine's. Processes have addresses of their own, as containers have: 127.0.1.1, 127.0.1.2.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../../services/runtime/free-port.ts'
import { endProgram, killAtExit, untilAnswers } from '../../support/runner/programs.ts'
import type { Requirement } from '../../support/runner/requirements.ts'
import { startDns } from './dns.ts'

export const balancerConfiguration = fileURLToPath(
  new URL('../../../deploy/balancer/haproxy.cfg', import.meta.url),
)

/** The addresses 127.0.1.1 and so on belong to the loopback on Linux only. */
export const haproxyProgram: Requirement = {
  isMet: process.platform === 'linux' && spawnSync('haproxy', ['-v']).status === 0,
  reason: 'no haproxy is installed (Debian: haproxy), or this is not Linux',
}

export type Balancer = Awaited<ReturnType<typeof startBalancer>>

/** Starts it on free ports, before processes that all have these ports. Resolves when its ops port answers. */
export async function startBalancer(processes: { api: number; ops: number }) {
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-balancer-'))
  const dns = await startDns()
  const ports = { api: await freePort(), portal: await freePort(), ops: await freePort() }
  const path = join(folder, 'haproxy.cfg')
  writeFileSync(
    path,
    changed(readFileSync(balancerConfiguration, 'utf8'), {
      'bind :8080': `bind 127.0.0.1:${ports.api}`,
      'bind :8081': `bind 127.0.0.1:${ports.portal}`,
      'bind :9090': `bind 127.0.0.1:${ports.ops}`,
      'query:8080': `query:${processes.api}`,
      'check port 9090': `check port ${processes.ops}`,
      'parse-resolv-conf': `nameserver test 127.0.0.1:${dns.port}`,
    }),
  )
  const child = spawn('haproxy', ['-W', '-db', '-f', path], { stdio: ['ignore', 'pipe', 'pipe'] })
  killAtExit(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', data => {
      output = (output + data).slice(-100_000)
    })
  }
  /** Asks it to end as the compose file does: the STOPSIGNAL of the official image. */
  async function stop(): Promise<void> {
    await endProgram(child, 'SIGUSR1')
    await dns.close()
    rmSync(folder, { recursive: true })
  }
  const opsUrl = `http://127.0.0.1:${ports.ops}`
  const answers = async () => (await fetch(`${opsUrl}/healthz`)).ok
  await untilAnswers(child, 'haproxy', answers, () => output).catch(async cause => {
    await stop()
    throw cause
  })
  return { apiUrl: `http://127.0.0.1:${ports.api}`, opsUrl, dns, stop }
}

/** Replaces each text, which has to be there. */
function changed(text: string, changes: Readonly<Record<string, string>>): string {
  let result = text
  for (const [from, to] of Object.entries(changes)) {
    if (!result.includes(from)) throw new Error(`${balancerConfiguration} has no ${from}`)
    result = result.replaceAll(from, to)
  }
  return result
}
