/** A third-party schema registry with Confluent's API. The schemas that tests register remain in it. */

import { memoryRegistryImage } from '../containers/images.ts'
import { apicurioRegistry, startApicurio } from '../servers/apicurio.ts'
import { inContainer } from './docker.ts'
import { atAddress, inOrder, type TestService } from './test-service.ts'

export interface TestSchemaRegistry {
  /** The address of Confluent's API. */
  url: string
  close(): Promise<void>
}

const port = 8080

export const schemaRegistryService: TestService<TestSchemaRegistry> = inOrder('a schema registry', [
  atAddress('PLEDGEVIEW_TEST_SCHEMA_REGISTRY_URL', async url => ({ url, close: async () => undefined })),
  inContainer({
    image: memoryRegistryImage(),
    async configure(container) {
      const { Wait } = await import('testcontainers')
      return container
        .withExposedPorts(port)
        .withWaitStrategy(Wait.forHttp('/apis/ccompat/v7/subjects', port))
    },
    open: async container => ({
      url: `http://${container.getHost()}:${container.getMappedPort(port)}/apis/ccompat/v7`,
      close: async () => undefined,
    }),
  }),
  {
    requirement: async () => ({
      ...(await apicurioRegistry()),
      source: 'Apicurio Registry from Maven Central',
    }),
    open: (): Promise<TestSchemaRegistry> => startApicurio(),
  },
])
