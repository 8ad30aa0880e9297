/** The alert rules, run by Prometheus's own tool: each fires when it should, alone, and none fires on a healthy installation. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, expect, test } from 'vitest'
import { needs } from '../../support/runner/requirements.ts'

const folder = fileURLToPath(new URL('../../../deploy/alerts/', import.meta.url))
const files = ['pledgeview', 'slo']
const promtool = {
  isMet: spawnSync('promtool', ['--version']).status === 0,
  reason: 'promtool is not installed (Debian: prometheus)',
}

beforeEach(context => needs(context, promtool))

function run(...args: string[]): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8', timeout: 60_000 })
  return { status, output: stdout + stderr }
}

test('the configuration of the compose profile, with its rules, is valid', () => {
  expect(run('check', 'config', join(folder, 'prometheus.yml'))).toMatchObject({ status: 0 })
})

test.each(files)('each alert of %s fires alone in its case, and no alert fires in the other cases', name => {
  const { status, output } = run('test', 'rules', join(folder, `${name}.test.yml`))
  expect(output).toContain('SUCCESS')
  expect(status).toBe(0)
})

test.each(files)('no alert of %s lacks a case in which it fires', name => {
  const [rules, cases] = ['rules', 'test'].map(kind =>
    readFileSync(join(folder, `${name}.${kind}.yml`), 'utf8'),
  )
  const alerts = [...(rules ?? '').matchAll(/- alert: (\w+)/g)].map(([, alert = '']) => alert)
  expect(alerts.length).toBeGreaterThan(3)
  for (const alert of alerts) expect(cases).toContain(`alertname="${alert}"`)
})
