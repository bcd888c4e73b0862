import { serviceLabel } from './labels.ts';

export type EnvironmentAddresses = {
  /** `{base_url}/e/{id}`, which stays the same when the hosts change. */
  linkOf(id: string): string;
  /** URL at which a client reads the Environment. */
  statusUrlOf(id: string): string;
  /** URL of a service without a trailing slash. */
  urlOf(service: string, label: string): string;
};

export function environmentAddresses(uiUrl: string, contentUrl: string): EnvironmentAddresses {
  const { protocol, host } = new URL(contentUrl);
  return {
    linkOf: (id) => `${uiUrl}/e/${id}`,
    statusUrlOf: (id) => `${uiUrl}/api/v2/environments/${id}`,
    urlOf: (service, label) => `${protocol}//${serviceLabel(service, label)}.${host}`,
  };
}
