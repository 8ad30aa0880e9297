/**
 * Two engines that get the same statements at the same times, to compare the model of ClickHouse with ClickHouse: every answer
 * of one is compared with that of the other. The world continues with the real one's answers.
 */
import type { TableInsert } from '../../../../services/tables/port.ts'
import type { Engine } from './engine.ts'
import type { KindOf } from './statement-kinds.ts'

export function createTwinEngine(real: Engine, model: Engine, kindOf: KindOf) {
  const differences: string[] = []
  let compared = 0
  return {
    /** Answers that differed, as text. */
    differences,
    /** How many answers were compared. */
    compared: () => compared,
    engine: {
      async read(...asked: Parameters<Engine['read']>) {
        const [rows, modelled] = await Promise.all([real.read(...asked), model.read(...asked)])
        compared++
        const [is, should] = [normal(modelled, rows), normal(rows, rows)]
        if (is !== should) differences.push(`${kindOf(asked[0])}: ${should}, and in the model ${is}`)
        return rows
      },
      async stage(...given: Parameters<Engine['stage']>) {
        const [first, second] = [await real.stage(...given), await model.stage(...given)]
        return async (onlySome: boolean) => {
          await first(onlySome)
          await second(onlySome)
        }
      },
      touchedBy: model.touchedBy,
      async insert(insert: TableInsert) {
        await real.insert(insert)
        await model.insert(insert)
      },
    } satisfies Engine,
  }
}

type Row = Record<string, unknown>

/** Rows as text, sorted, because ClickHouse promises no order. Only the columns that the real rows have. */
function normal(rows: readonly unknown[], real: readonly unknown[]): string {
  // The model has no times of events.
  const ofTimes = ['oldestAt', 'isOfBacklog']
  const columns = Object.keys((real[0] ?? {}) as Row).filter(column => !ofTimes.includes(column))
  const lines = rows.map(row => JSON.stringify(columns.map(column => sorted(row as Row, column))))
  return lines.toSorted().join('\n')
}

function sorted(row: Row, column: string): unknown {
  const { ids } = row
  const value = row[column]
  // How many rows are new tells only whether there are any: some of them are superseded.
  if (column === 'unnoted' || column === 'underived') return Number(value) > 0
  if (!Array.isArray(ids) || !Array.isArray(value)) return value
  return value.map((item, at) => [ids[at], item]).toSorted()
}
