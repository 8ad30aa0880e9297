/** A third-party schema registry with Confluent's API. The schemas that tests register remain in it. */
import { apicurioRegistry, startApicurio } from '../apicurio.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

export interface TestSchemaRegistry {
  /** The address of Confluent's API. */
  url: string
  close(): Promise<void>
}

export const schemaRegistryService: TestService<TestSchemaRegistry> = inOrder('a schema registry', [
  atAddress('PLEDGEVIEW_TEST_SCHEMA_REGISTRY_URL', async url => ({ url, close: async () => undefined })),
  {
    requirement: async () => ({
      ...(await apicurioRegistry()),
      source: 'Apicurio Registry from Maven Central',
    }),
    open: startApicurio,
  },
])
