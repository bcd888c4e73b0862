import { ActionIcon, type MantineColorScheme, Menu, useMantineColorScheme } from '@mantine/core';
import { SunIcon } from './icons.tsx';

const schemes: readonly { value: MantineColorScheme; label: string }[] = [
  { value: 'auto', label: 'Same as system' },
  { value: 'light', label: 'Light' },
  { value: 'dark', label: 'Dark' },
];

export function SchemeMenu() {
  // Mantine would switch transitions off for the moment of the change, with a <style> element that our policy refuses.
  const { colorScheme, setColorScheme } = useMantineColorScheme({ keepTransitions: true });
  return (
    <Menu position="bottom-end" transitionProps={{ duration: 0 }}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Colours">
          <SunIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {schemes.map(({ value, label }) => (
          <Menu.Item key={value} onClick={() => setColorScheme(value)} aria-current={colorScheme === value}>
            {label}
            {colorScheme === value && <span aria-hidden="true"> ✓</span>}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
