/** The keychain of the system: texts by name. Each call may throw, such as without a session of a desktop. */
export type Keychain = {
  get(name: string): string | null;
  set(name: string, text: string): void;
  remove(name: string): void;
};

/** The part of @napi-rs/keyring that is used. */
type Keyring = {
  Entry: new (
    service: string,
    account: string,
  ) => {
    getPassword(): string | null;
    setPassword(text: string): void;
    deletePassword(): unknown;
  };
};

const service = 'postern';

/**
 * Uses @napi-rs/keyring if it is installed together with this package. A downloaded file loads no packages, because they
 * would be those of the folder that contains it.
 */
export function systemKeychain(): Keychain | undefined {
  if (!/[\\/]node_modules[\\/]@postern[\\/]cli[\\/]/.test(decodeURIComponent(import.meta.url)))
    return undefined;
  let keyring: Keyring;
  try {
    // Not imported: the bundle uses the same module before its imports of Node's modules are there.
    const { createRequire } = process.getBuiltinModule('node:module');
    keyring = createRequire(import.meta.url)('@napi-rs/keyring');
  } catch {
    return undefined;
  }
  const entry = (name: string) => new keyring.Entry(service, name);
  return {
    get: (name) => entry(name).getPassword(),
    set: (name, text) => entry(name).setPassword(text),
    remove: (name) => void entry(name).deletePassword(),
  };
}
