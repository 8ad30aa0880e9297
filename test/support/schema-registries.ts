/**
 * The schema registries that the tests run on: one in this process, a real one, and, where SCHEMA_REGISTRY_URL names it,
 * any other that speaks Confluent's API. That one should be empty, and is left with what the tests registered.
 */
import { apicurioRegistry, startApicurio } from './apicurio.ts'
import { startFakeSchemaRegistry } from './fake-schema-registry.ts'
import type { Requirement } from './requirements.ts'

export interface RegistryUnderTest {
  name: string
  requirement(): Promise<Requirement>
  open(): Promise<{ url: string; close(): Promise<void> }>
}

const met = async (): Promise<Requirement> => ({ isMet: true, reason: '' })
const { SCHEMA_REGISTRY_URL } = process.env

export const schemaRegistries: readonly RegistryUnderTest[] = [
  { name: 'in this process', requirement: met, open: startFakeSchemaRegistry },
  { name: 'Apicurio Registry', requirement: apicurioRegistry, open: startApicurio },
  ...(SCHEMA_REGISTRY_URL
    ? [
        {
          name: SCHEMA_REGISTRY_URL,
          requirement: met,
          open: async () => ({ url: SCHEMA_REGISTRY_URL, close: async () => {} }),
        },
      ]
    : []),
]
