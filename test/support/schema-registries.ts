/** The schema registries that the tests run on: one in this process, and a real one that nobody here wrote. */
import { startFakeSchemaRegistry } from './fake-schema-registry.ts'
import { schemaRegistryService, type TestSchemaRegistry } from './services/schema-registry.ts'
import type { TestService } from './services/test-service.ts'

export const schemaRegistries: readonly TestService<TestSchemaRegistry>[] = [
  {
    name: 'in this process',
    requirement: async () => ({ isMet: true, reason: '' }),
    open: startFakeSchemaRegistry,
  },
  { ...schemaRegistryService, name: 'a real one' },
]
