//! The public items of the library `baton`, one a line, found by its syntax from `lib.rs` on.
//!
//! It follows public modules and re-exports as the compiler does, so that an item stands where a user names it. Features
//! are all taken as on; what is hidden from the documentation is left out.
#![expect(clippy::indexing_slicing, reason = "a test that cannot go on fails")]

mod members;
mod signature;
mod tree;

use std::collections::{BTreeSet, HashMap};

use baton_testkit::golden;
use syn::{Item, ItemImpl, UseTree, Visibility};

use self::{
    members::{impl_lines, item_lines},
    tree::{Found, ModuleId, Tree, is_hidden},
};
use crate::sources::packages;

/// The list as it grows.
struct Listing<'a> {
    tree: &'a Tree,
    impls: HashMap<(ModuleId, String), Vec<&'a ItemImpl>>,
    lines: BTreeSet<String>,
    /// Modules on the way here: two that re-export each other end here.
    way: Vec<ModuleId>,
}

impl Listing<'_> {
    /// All public items of a module, named below `path`.
    fn module(&mut self, module: ModuleId, path: &str) {
        if self.way.contains(&module) {
            return;
        }
        self.way.push(module);
        let tree = self.tree;
        for item in &tree.modules[module].items {
            match item {
                Item::Use(it) if is_public(&it.vis) && !is_hidden(&it.attrs) => {
                    self.re_export(module, &mut Vec::new(), &it.tree, path);
                }
                Item::Mod(it) if is_public(&it.vis) && !is_hidden(&it.attrs) => {
                    if let Some(child) = tree.modules[module].children.get(&it.ident.to_string()) {
                        let path = format!("{path}::{}", it.ident);
                        self.lines.insert(format!("mod {path}"));
                        self.module(*child, &path);
                    }
                }
                other => {
                    if let Some(name) = tree::public_name(other) {
                        self.item(module, &name, path, &name);
                    }
                }
            }
        }
        for (name, variants) in tree.made_by_macros(module) {
            self.lines.insert(format!("enum {path}::{name}"));
            self.lines.extend(variants.iter().map(|variant| format!("variant {path}::{name}::{variant}")));
        }
        for child in tree.globs_of_macros(module) {
            self.module(child, path);
        }
        self.way.pop();
    }

    /// What a tree of `pub use` brings, named below `path`.
    fn re_export(&mut self, module: ModuleId, before: &mut Vec<String>, tree: &UseTree, path: &str) {
        match tree {
            UseTree::Path(it) => {
                before.push(it.ident.to_string());
                self.re_export(module, before, &it.tree, path);
                before.pop();
            }
            UseTree::Group(it) => it.items.iter().for_each(|tree| self.re_export(module, before, tree, path)),
            UseTree::Glob(_) => match self.tree.resolve(module, before) {
                Some(Found::Module(found)) => self.module(found, path),
                _ => panic!("a glob of {before:?} is not understood"),
            },
            UseTree::Name(it) => self.named(module, before, &it.ident.to_string(), &it.ident.to_string(), path),
            UseTree::Rename(it) if it.rename != "_" => {
                self.named(module, before, &it.ident.to_string(), &it.rename.to_string(), path);
            }
            UseTree::Rename(_) => {}
        }
    }

    fn named(&mut self, module: ModuleId, before: &[String], name: &str, shown: &str, path: &str) {
        let whole: Vec<String> = before.iter().cloned().chain([name.to_owned()]).collect();
        match self.tree.resolve(module, &whole) {
            Some(Found::Item(home, name)) => self.item(home, &name, path, shown),
            Some(Found::Module(found)) => {
                let path = format!("{path}::{shown}");
                self.lines.insert(format!("mod {path}"));
                self.module(found, &path);
            }
            None => {
                self.lines.insert(format!("use {path}::{shown} = {}", whole.join("::")));
            }
        }
    }

    /// An item of a module, named below `path`, with its members.
    fn item(&mut self, home: ModuleId, name: &str, path: &str, shown: &str) {
        let path = format!("{path}::{shown}");
        for item in self.tree.items_named(home, name) {
            self.lines.extend(item_lines(item, &path));
        }
        for block in self.impls.get(&(home, name.to_owned())).into_iter().flatten() {
            self.lines.extend(impl_lines(block, &path));
        }
    }
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

#[test]
fn golden_public_items_of_the_library() {
    let tree = Tree::read(&packages().join("baton/src"));
    let mut listing = Listing { tree: &tree, impls: tree.impls(), lines: BTreeSet::new(), way: Vec::new() };
    listing.module(Tree::ROOT, "baton");
    let mut lines: Vec<String> = listing.lines.into_iter().collect();
    // An item and all its members stand together.
    lines.sort_by_cached_key(|line| line.get(line.find("baton").unwrap_or(0)..).map(str::to_owned));
    for known in ["struct baton::Fleet", "trait baton::store::Store", "enum baton::store::Request"] {
        assert!(lines.iter().any(|line| line.starts_with(known)), "{known} is not found");
    }
    golden::assert_file("library.txt", &(lines.join("\n") + "\n"));
}
