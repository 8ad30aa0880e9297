/**
 * The Grafana boards: each query of Prometheus is valid and asks for metrics that the program has. examples.test.ts asks those of
 * ClickHouse.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { idleGauges } from '../../support/projector/gauges.ts'
import { needs } from '../../support/runner/requirements.ts'
import { expandPromQl, promQueries } from './board-files.ts'

describe('the queries of Prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-boards-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  const promtool = {
    isMet: spawnSync('promtool', ['--version']).status === 0,
    reason: 'promtool is not installed (Debian: prometheus)',
  }

  async function namesOfMetrics(): Promise<Set<string>> {
    const metrics = createMetrics()
    idleGauges({ metrics })
    const known = await metrics.registry.getMetricsAsJSON()
    return new Set(
      known.flatMap(({ name, type }) =>
        type === 'histogram' ? ['bucket', 'sum', 'count'].map(part => `${name}_${part}`) : [name],
      ),
    )
  }

  test('those of the boards and of the alert rules ask for metrics that the program has', async () => {
    const rules = new URL('../../../deploy/alerts/pledgeview.rules.yml', import.meta.url)
    const texts = [...promQueries().map(({ text }) => text), readFileSync(rules, 'utf8')]
    const asked = texts.flatMap(
      text => text.match(/\b(?:pledgeview|process|nodejs)_[a-z0-9_]+(?=[{[)\s,<>=]|$)/gm) ?? [],
    )
    expect(new Set(asked).size).toBeGreaterThan(25)
    const there = await namesOfMetrics()
    expect([...new Set(asked)].filter(name => !there.has(name))).toEqual([])
  })

  test('are valid', context => {
    needs(context, promtool)
    const rules = promQueries()
      .filter(({ text }) => !text.startsWith('label_values('))
      .map(({ text }, index) => ({ record: `board:query:${index}`, expr: expandPromQl(text) }))
    expect(rules.length).toBeGreaterThan(30)
    for (const { expr } of rules) expect(expr).not.toContain('$')
    const file = join(folder, 'rules.yml')
    // JSON is YAML.
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'boards', rules }] }))
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', file], { encoding: 'utf8' })
    expect({ status, errors: status === 0 ? '' : stdout + stderr }).toEqual({ status: 0, errors: '' })
  })
})
