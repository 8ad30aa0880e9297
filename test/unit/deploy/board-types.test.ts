/** The files of the Grafana boards: they have the types of Grafana's own schema, and what they refer to is there. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { type Board, boards, boardsFolder } from '../../integration/deploy/board-files.ts'

const root = new URL('../../../', import.meta.url).pathname
// Below node_modules, so that the compiler finds Grafana's package.
const cache = join(root, 'node_modules/.cache')
mkdirSync(cache, { recursive: true })
const folder = mkdtempSync(join(cache, 'boards-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** The types of a panel's options and of its fields, by the type of the panel, as Grafana's package names them. */
const panelTypes = {
  timeseries: { module: 'TimeSeries', hasFields: true },
  barchart: { module: 'BarChart', hasFields: true },
  stat: { module: 'Stat', hasFields: false },
  table: { module: 'Table', hasFields: false },
} as const

// In JSON an enum is its value. What is left out has Grafana's default.
const head = `import type { Dashboard, Panel, RowPanel } from '@grafana/schema'
${Object.entries(panelTypes)
  .map(
    ([type, { module }]) =>
      `import type * as ${type} from '@grafana/schema/dist/esm/raw/composable/${type}/panelcfg/x/${module}PanelCfg_types.gen'`,
  )
  .join('\n')}
type Json<T> = T extends string ? \`\${T}\`
  : T extends number | boolean | null | undefined ? T
  : T extends readonly (infer Item)[] ? Json<Item>[]
  : T extends object ? { [Key in keyof T]?: Json<T[Key]> } : T
type Board = Omit<Json<Dashboard>, 'panels'> & { panels: (Json<Panel> | Json<RowPanel>)[] }
`

/** Compiles the boards as values of Grafana's types. Resolves with the compiler's errors. */
function errorsOf(name: string, all: readonly Board['json'][]): string {
  const values = all.flatMap((json, index) => [
    `export const board${index}: Board = ${JSON.stringify(json)}`,
    ...json.panels.flatMap(panel => {
      if (panel.type === 'row') return []
      const known = panelTypes[panel.type as keyof typeof panelTypes]
      if (!known) return [`export const unknown: never = ${JSON.stringify(panel.type)}`]
      const { options, fieldConfig } = panel as unknown as {
        options: object
        fieldConfig: { defaults: { custom?: object } }
      }
      const place = `board${index}panel${panel.id}`
      const { custom } = fieldConfig.defaults
      return [
        `export const ${place}: Json<${panel.type}.Options> = ${JSON.stringify(options)}`,
        ...(known.hasFields && custom
          ? [`export const ${place}fields: Json<${panel.type}.FieldConfig> = ${JSON.stringify(custom)}`]
          : []),
      ]
    }),
  ])
  const file = join(folder, `${name}.ts`)
  writeFileSync(file, head + values.join('\n'))
  const flags = ['--ignoreConfig', '--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext']
  const { stdout, stderr } = spawnSync(join(root, 'node_modules/.bin/tsc'), [...flags, file], {
    encoding: 'utf8',
    cwd: root,
  })
  return stdout + stderr
}

test('the boards have the types of Grafana’s schema', () => {
  expect(
    errorsOf(
      'boards',
      boards.map(({ json }) => json),
    ),
  ).toBe('')
})

test('a field that Grafana does not know, and a value that it does not allow, would be noticed', () => {
  const [board] = boards
  const [panel] = board?.json.panels.filter(({ type }) => type === 'timeseries') ?? []
  if (!board || !panel) throw new Error('there is no panel')
  const wrong = [
    { ...board.json, colour: 'red' },
    { ...board.json, panels: [{ ...panel, gridPos: { ...panel.gridPos, left: 0 } }] },
    { ...board.json, panels: [{ ...panel, options: { tooltip: { mode: 'many', sort: 'none' } } }] },
  ]
  const errors = errorsOf('wrong', wrong)
  for (const name of ['colour', 'left', 'many']) expect(errors).toContain(name)
})

test.each(boards)(
  '$name: ids are unique, no panels overlap, and the data sources are those that are provisioned',
  ({ json }) => {
    const { panels, templating } = json
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    const taken = new Set<string>()
    for (const { gridPos, title } of panels) {
      expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24)
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect(taken.has(`${x} ${y}`), title).toBe(false)
          taken.add(`${x} ${y}`)
        }
      }
    }
    const provisioned = readFileSync(join(boardsFolder, 'provisioning/datasources/pledgeview.yml'), 'utf8')
    const uids = [...provisioned.matchAll(/uid: (\S+)/g)].map(([, uid]) => uid)
    expect(uids.length).toBe(2)
    const used = [
      ...templating.list.map(({ datasource }) => datasource.uid),
      ...panels.flatMap(({ datasource, targets = [] }) => [
        ...(datasource ? [datasource.uid] : []),
        ...targets.map(target => target.datasource.uid),
      ]),
    ]
    for (const uid of used) expect(uids).toContain(uid)
  },
)

test('each board has a uid of its own', () => {
  expect(new Set(boards.map(({ json }) => json.uid)).size).toBe(boards.length)
})
