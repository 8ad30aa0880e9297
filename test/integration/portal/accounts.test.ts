import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe } from 'vitest'
import { openJournalStateTopic } from '../../../services/shared/event-log/journal/state-topic.ts'
import { openKafkaStateTopic } from '../../../services/shared/event-log/kafka/state-topic.ts'
import { makeTopics, removeTopics, settingsFor, silent } from '../../support/kafka/topics.ts'
import { kafkaService } from '../../support/services/kafka.ts'
import { useService } from '../../support/services/test-service.ts'
import { describeAccounts } from './accounts.conformance.ts'

describeAccounts('in a journal', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'accounts-'))
  return {
    open: () => openJournalStateTopic(join(directory, 'journal.sqlite'), 'accounts', { logger: silent }),
    remove: async () => rmSync(directory, { recursive: true }),
  }
})

describe(kafkaService.name, () => {
  const kafka = useService(kafkaService)

  describeAccounts('on Kafka', async () => {
    const settings = settingsFor(kafka().address)
    await makeTopics(settings, { partitions: 3 })
    return {
      open: () => openKafkaStateTopic(settings, 'accounts', { logger: silent }),
      remove: () => removeTopics(settings),
    }
  })
})
