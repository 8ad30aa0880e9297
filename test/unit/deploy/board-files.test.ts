/** The files of the Grafana boards: what they refer to is there. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { boards, boardsFolder } from '../../integration/deploy/board-files.ts'

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
