import { Button } from '@mantine/core';
import { OpenIcon } from './icons.tsx';

/** Opens content in a new tab, such as a site, a preview or an Environment. */
export function OpenButton({ href, children }: { href: string; children: string }) {
  return (
    <Button component="a" href={href} target="_blank" rel="noreferrer" leftSection={<OpenIcon size={16} />}>
      {children}
    </Button>
  );
}
