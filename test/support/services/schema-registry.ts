/** A third-party schema registry, by the address of Confluent's API. The schemas that tests register remain in it. */
import { apicurioRegistry, startApicurio } from '../servers/apicurio.ts'
import { imageOf, inContainer } from './docker.ts'
import { atAddress, type Closable, inOrder, type TestService } from './test-service.ts'

const port = 8080

export const schemaRegistryService: TestService<{ url: string } & Closable> = inOrder('a schema registry', [
  atAddress('PLEDGEVIEW_TEST_SCHEMA_REGISTRY_URL', async url => ({ url })),
  inContainer({
    // The in-memory variant of the registry in the compose file, with the same version.
    image: imageOf('apicurio/apicurio-registry-kafkasql').replace('-kafkasql:', '-mem:'),
    async configure(container) {
      const { Wait } = await import('testcontainers')
      return container
        .withExposedPorts(port)
        .withWaitStrategy(Wait.forHttp('/apis/ccompat/v7/subjects', port))
    },
    open: async container => ({
      url: `http://${container.getHost()}:${container.getMappedPort(port)}/apis/ccompat/v7`,
    }),
  }),
  {
    requirement: async () => ({
      ...(await apicurioRegistry()),
      source: 'Apicurio Registry from Maven Central',
    }),
    open: () => startApicurio(),
  },
])
