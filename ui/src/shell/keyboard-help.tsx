import { Modal } from '@mantine/core';
import styles from './keyboard-help.module.css';

const shortcuts = [
  { keys: ['Ctrl', 'K'], does: 'Go anywhere, find a key, a site or an Environment (⌘ K on a Mac)' },
  { keys: ['/'], does: 'Search the list on the page' },
  { keys: ['n'], does: 'Create a new item for the list on the page' },
  { keys: ['↑', '↓'], does: 'Move from row to row; Enter opens one' },
  { keys: ['?'], does: 'Show this help' },
  { keys: ['Esc'], does: 'Close a dialog or a menu' },
] as const;

export function KeyboardHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Modal opened={isOpen} onClose={onClose} title="Keyboard">
      <dl className={styles['list']}>
        {shortcuts.map(({ keys, does }) => (
          <div key={does}>
            <dt>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
      <p className={styles['note']}>
        Single-letter shortcuts work while you are not typing. You can switch them off in the menu with your
        name.
      </p>
    </Modal>
  );
}
