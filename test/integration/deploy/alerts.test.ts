/** The alert rules, run by Prometheus's own tool: each fires when it should, alone, and none fires on a healthy installation. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { needs } from '../../support/runner/requirements.ts'

const folder = fileURLToPath(new URL('../../../deploy/alerts/', import.meta.url))
const rules = readFileSync(join(folder, 'pledgeview.rules.yml'), 'utf8')
const files = ['pledgeview', 'slo']
const copy = mkdtempSync(join(tmpdir(), 'pledgeview-alerts-'))
const promtool = {
  isMet: spawnSync('promtool', ['--version']).status === 0,
  reason: 'promtool is not installed (Debian: prometheus)',
}

beforeEach(context => needs(context, promtool))
afterAll(() => rmSync(copy, { recursive: true }))

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

test('a rule that never fires, and one that always fires, would be noticed', () => {
  cpSync(folder, copy, { recursive: true })
  const dead = rules.replace('(pledgeview_freshness_seconds) > 60', '(pledgeview_freshness_seconds) > 1e9')
  const loud = rules.replace('pledgeview_redis_up == 0', 'pledgeview_redis_up >= 0')
  for (const broken of [dead, loud]) {
    expect(broken).not.toBe(rules)
    writeFileSync(join(copy, 'pledgeview.rules.yml'), broken)
    expect(run('test', 'rules', join(copy, 'pledgeview.test.yml'))).toMatchObject({ status: 1 })
  }
})
