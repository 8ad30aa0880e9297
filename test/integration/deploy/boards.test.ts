/**
 * The Grafana boards: what they refer to is there, and each query of Prometheus is valid and asks for metrics that the program has.
 * examples.test.ts asks those of ClickHouse.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { idleGauges } from '../../support/projector/gauges.ts'
import { needs } from '../../support/runner/requirements.ts'
import { boards, boardsFolder, expandPromQl, promQueries } from './board-files.ts'

test('each board has a uid of its own, and data sources that are provisioned', () => {
  expect(new Set(boards.map(({ json }) => json.uid)).size).toBe(boards.length)
  const provisioned = readFileSync(join(boardsFolder, 'provisioning/datasources/pledgeview.yml'), 'utf8')
  const uids = [...provisioned.matchAll(/uid: (\S+)/g)].map(([, uid]) => uid)
  expect(uids).toHaveLength(2)
  for (const { json } of boards) {
    expect(new Set(json.panels.map(({ id }) => id)).size).toBe(json.panels.length)
    const panels = json.panels.flatMap(({ datasource, targets = [] }) => [
      ...(datasource ? [datasource.uid] : []),
      ...targets.map(target => target.datasource.uid),
    ])
    for (const uid of [...panels, ...json.templating.list.map(({ datasource }) => datasource.uid)])
      expect(uids).toContain(uid)
  }
})

describe('the queries of Prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pledgeview-boards-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  const promtool = {
    isMet: spawnSync('promtool', ['--version']).status === 0,
    reason: 'promtool is not installed (Debian: prometheus)',
  }

  test('those of the boards and of the alert rules ask for metrics that the program has', async () => {
    const rules = new URL('../../../deploy/alerts/pledgeview.rules.yml', import.meta.url)
    const texts = [...promQueries().map(({ text }) => text), readFileSync(rules, 'utf8')]
    const asked = texts.flatMap(
      text => text.match(/\b(?:pledgeview|process|nodejs)_[a-z0-9_]+(?=[{[)\s,<>=]|$)/gm) ?? [],
    )
    expect(new Set(asked).size).toBeGreaterThan(25)
    const metrics = createMetrics()
    idleGauges({ metrics })
    const there = (await metrics.registry.getMetricsAsJSON()).flatMap(({ name, type }) =>
      type === 'histogram' ? ['bucket', 'sum', 'count'].map(part => `${name}_${part}`) : [name],
    )
    expect([...new Set(asked)].filter(name => !there.includes(name))).toEqual([])
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
