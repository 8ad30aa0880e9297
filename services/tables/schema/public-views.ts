/** The data teams' views as their definitions describe them. Only files are read. */

import { defaultDatabases } from '../generation-log.ts'
import { viewsOf } from './cluster-views.ts'
import { readSqlFiles, viewsDirectory } from './sql-files.ts'

export interface PublicView {
  name: string
  comment: string
  columns: { name: string; type: string; comment: string }[]
}

/** In the order of their names. Throws if a view or a column has no comment. */
export function readPublicViews(): PublicView[] {
  const prefix = `${defaultDatabases.views}.`
  return viewsOf(readSqlFiles(viewsDirectory, defaultDatabases, {}).flatMap(({ statements }) => statements))
    .filter(({ name }) => name.startsWith(prefix))
    .map(({ name, columns, comment }) => ({
      name: name.slice(prefix.length),
      comment: textIn(comment),
      columns: columns.trim().split('\n').slice(1, -1).map(columnOf),
    }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function columnOf(line: string): PublicView['columns'][number] {
  const [, name = '', type = '', comment = ''] = /^\s*(\w+)\s+(.+?) (COMMENT '.+'),?$/.exec(line) ?? []
  return { name, type, comment: textIn(comment) }
}

function textIn(comment: string): string {
  const [, text] = /^\s*COMMENT '(.+)'$/.exec(comment) ?? []
  if (text === undefined) throw new Error(`a view or a column has no comment: ${comment}`)
  return text.replaceAll("''", "'")
}
