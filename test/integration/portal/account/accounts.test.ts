import { describe } from 'vitest'
import { settingsFor } from '../../../support/kafka/topics.ts'
import { projectedJournal, projectedKafka } from '../../../support/portal/projected-log.ts'
import { useModelTables } from '../../../support/projector/use-model-tables.ts'
import { kafkaService } from '../../../support/services/kafka.ts'
import { useService } from '../../../support/services/test-service.ts'
import { describeAccounts } from './accounts.conformance.ts'
import { describeDeletions } from './deletions.conformance.ts'

const model = useModelTables()

describe('in a journal', () => {
  const make = () => projectedJournal(model)
  describeAccounts(make)
  describeDeletions(make, { model: () => model, runs: 15 })
})

describe(kafkaService.name, () => {
  const kafka = useService(kafkaService)
  const make = () => projectedKafka(model, settingsFor(kafka().address))
  describeAccounts(make)
  describeDeletions(make, { model: () => model, runs: 6 })
})
