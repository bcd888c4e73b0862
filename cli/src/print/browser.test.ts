import { expect, test } from 'vitest';
import { openInBrowser } from './browser.ts';

test.each(['file:///etc/passwd', 'javascript:alert(1)', '--help', 'vscode://run', ''])(
  'the address %j of a server is not opened',
  (address) => {
    expect(() => openInBrowser(address)).toThrow('no page');
  },
);
