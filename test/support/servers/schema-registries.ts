/** The schema registries that the tests run on: a fake in this process, and a real third-party one. */

import { schemaRegistryService, type TestSchemaRegistry } from '../services/schema-registry.ts'
import type { TestService } from '../services/test-service.ts'
import { startFakeSchemaRegistry } from './fake-schema-registry.ts'

export const schemaRegistries: readonly TestService<TestSchemaRegistry>[] = [
  {
    name: 'in this process',
    requirement: async () => ({ isMet: true, reason: '' }),
    open: startFakeSchemaRegistry,
  },
  { ...schemaRegistryService, name: 'a real one' },
]
