import { useHotkeys, useLocalStorage } from '@mantine/hooks';

/** Single letters disturb people who speak to their computer, so they can be switched off (WCAG 2.1.4). */
export function useShortcutsSwitch() {
  return useLocalStorage({ key: 'postern-shortcuts', defaultValue: true, getInitialValueInEffect: false });
}

/** Runs an action on a single letter, except while the user types or a dialog is open. */
export function useShortcut(letter: string, act: () => void): void {
  const [isOn] = useShortcutsSwitch();
  const unlessBusy = () => {
    if (document.querySelector('[role="dialog"], [role="menu"]') === null) act();
  };
  useHotkeys(isOn ? [[letter, unlessBusy]] : []);
}
