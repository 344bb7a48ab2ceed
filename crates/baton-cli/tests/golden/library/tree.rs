//! The modules of a library with what stands in them, and the ways from a path to an item.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{Attribute, Item, ItemImpl, Type, UseTree};

use super::is_public;
use crate::sources::{is_of_tests, parse};

/// A module's place in the tree.
pub(super) type ModuleId = usize;

#[derive(Default)]
pub(super) struct Module {
    pub(super) items: Vec<Item>,
    pub(super) children: BTreeMap<String, ModuleId>,
    parent: Option<ModuleId>,
}

/// What a path leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    Module(ModuleId),
    /// An item by its name in its module.
    Item(ModuleId, String),
}

pub(super) struct Tree {
    pub(super) modules: Vec<Module>,
}

pub(super) fn is_hidden(attributes: &[Attribute]) -> bool {
    let hides =
        |it: &Attribute| it.path().is_ident("doc") && it.parse_args::<syn::Ident>().is_ok_and(|it| it == "hidden");
    is_of_tests(attributes) || attributes.iter().any(hides)
}

/// The name of an item, with its attributes and whether it is public.
fn name_of(item: &Item) -> Option<(String, &[Attribute], bool)> {
    let (name, attributes, visibility) = match item {
        Item::Struct(it) => (&it.ident, &it.attrs, &it.vis),
        Item::Enum(it) => (&it.ident, &it.attrs, &it.vis),
        Item::Trait(it) => (&it.ident, &it.attrs, &it.vis),
        Item::Fn(it) => (&it.sig.ident, &it.attrs, &it.vis),
        Item::Type(it) => (&it.ident, &it.attrs, &it.vis),
        Item::Const(it) => (&it.ident, &it.attrs, &it.vis),
        Item::Static(it) => (&it.ident, &it.attrs, &it.vis),
        _ => return None,
    };
    Some((name.to_string(), attributes, is_public(visibility)))
}

/// The name of an item that a user may name.
pub(super) fn public_name(item: &Item) -> Option<String> {
    let (name, attributes, is_public) = name_of(item)?;
    (is_public && !is_hidden(attributes)).then_some(name)
}

impl Tree {
    pub(super) const ROOT: ModuleId = 0;

    /// Reads all modules from `lib.rs` on.
    pub(super) fn read(source: &Path) -> Self {
        let mut tree = Self { modules: Vec::new() };
        let items = parse(&source.join("lib.rs")).items;
        tree.add(None, items, source.to_owned());
        tree
    }

    fn add(&mut self, parent: Option<ModuleId>, items: Vec<Item>, folder: PathBuf) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module { parent, ..Module::default() });
        for item in &items {
            let Item::Mod(module) = item else { continue };
            if is_of_tests(&module.attrs) {
                continue;
            }
            let name = module.ident.to_string();
            let below = folder.join(&name);
            let items = match &module.content {
                Some((_, items)) => items.clone(),
                None => {
                    let file = folder.join(format!("{name}.rs"));
                    parse(&if file.exists() { file } else { below.join("mod.rs") }).items
                }
            };
            let child = self.add(Some(id), items, below);
            self.modules[id].children.insert(name, child);
        }
        self.modules[id].items = items;
        id
    }

    pub(super) fn items_named<'a>(&'a self, module: ModuleId, name: &str) -> impl Iterator<Item = &'a Item> {
        let name = name.to_owned();
        let named =
            move |item: &&Item| name_of(item).is_some_and(|(it, attributes, _)| it == name && !is_hidden(attributes));
        self.modules[module].items.iter().filter(named)
    }

    /// What a path means in a module; nothing if it leads out of the library.
    pub(super) fn resolve(&self, module: ModuleId, path: &[String]) -> Option<Found> {
        self.resolve_within(module, path, 20)
    }

    fn resolve_within(&self, module: ModuleId, path: &[String], depth: u8) -> Option<Found> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Found::Module(Self::ROOT),
            "self" => Found::Module(module),
            "super" => Found::Module(self.modules[module].parent?),
            name => self.lookup(module, name, rest.is_empty(), depth)?,
        };
        for (at_name, name) in rest.iter().enumerate() {
            let Found::Module(module) = at else { return None };
            at = match name.as_str() {
                "super" => Found::Module(self.modules[module].parent?),
                name => self.lookup(module, name, at_name + 1 == rest.len(), depth)?,
            };
        }
        Some(at)
    }

    /// What a name means in a module: what stands there, then what it imports by name, then all that it imports. The last
    /// name of a path is rather that of an item than that of a module, which may have the same.
    fn lookup(&self, module: ModuleId, name: &str, is_last: bool, depth: u8) -> Option<Found> {
        let depth = depth.checked_sub(1)?;
        let child = self.modules[module].children.get(name).map(|child| Found::Module(*child));
        if child.is_some() && !is_last {
            return child;
        }
        if self.items_named(module, name).next().is_some() {
            return Some(Found::Item(module, name.to_owned()));
        }
        let mut globs: Vec<Vec<String>> = Vec::new();
        for item in &self.modules[module].items {
            let Item::Use(it) = item else { continue };
            let mut leaves = Vec::new();
            leaves_of(&it.tree, &mut Vec::new(), &mut leaves);
            for (shown, path) in leaves {
                match shown {
                    Some(shown) if shown == name => {
                        let found = self.resolve_within(module, &path, depth);
                        if child.is_none() || matches!(found, Some(Found::Item(..))) {
                            return found;
                        }
                    }
                    Some(_) => {}
                    None => globs.push(path),
                }
            }
        }
        if child.is_some() {
            return child;
        }
        let of_globs = globs.iter().filter_map(|path| match self.resolve_within(module, path, depth) {
            Some(Found::Module(found)) if found != module => self.lookup(found, name, is_last, depth),
            _ => None,
        });
        let of_macros = self.globs_of_macros(module).into_iter();
        let of_macros = of_macros.filter_map(|found| self.lookup(found, name, is_last, depth));
        of_globs.chain(of_macros).next()
    }

    /// The `impl` blocks without a trait, by the module and the name of their type.
    pub(super) fn impls(&self) -> HashMap<(ModuleId, String), Vec<&ItemImpl>> {
        let mut impls: HashMap<_, Vec<_>> = HashMap::new();
        for (module, items) in self.modules.iter().enumerate() {
            for item in &items.items {
                if let Item::Impl(block) = item
                    && let Type::Path(of) = &*block.self_ty
                    && block.trait_.is_none()
                    && !is_hidden(&block.attrs)
                {
                    let path: Vec<String> = of.path.segments.iter().map(|it| it.ident.to_string()).collect();
                    if let Some(Found::Item(home, name)) = self.resolve(module, &path) {
                        impls.entry((home, name)).or_default().push(block);
                    }
                }
            }
        }
        impls
    }

    /// The list that a macro of this module hands to the macros `requests`, as names of modules and of variants: the
    /// operations of a store are declared so.
    fn operations(&self, module: ModuleId) -> Vec<(String, String)> {
        let macros = self.modules[module].items.iter().filter_map(|item| match item {
            Item::Macro(it) => Some(it),
            _ => None,
        });
        let (mut is_made, mut listed) = (false, Vec::new());
        for it in macros {
            is_made |= it.mac.path.is_ident("operations") && it.mac.tokens.to_string() == "requests";
            if it.ident.as_ref().is_some_and(|name| name == "operations") {
                pairs(it.to_token_stream(), &mut listed);
            }
        }
        if is_made { listed } else { Vec::new() }
    }

    /// Enums with their variants that a macro makes in a module.
    pub(super) fn made_by_macros(&self, module: ModuleId) -> Vec<(&'static str, Vec<String>)> {
        let variants: Vec<String> = self.operations(module).into_iter().map(|(_, variant)| variant).collect();
        if variants.is_empty() { Vec::new() } else { vec![("Request", variants.clone()), ("Answer", variants)] }
    }

    /// Modules of which a macro re-exports everything.
    pub(super) fn globs_of_macros(&self, module: ModuleId) -> Vec<ModuleId> {
        let children = &self.modules[module].children;
        self.operations(module).iter().filter_map(|(child, _)| children.get(child).copied()).collect()
    }
}

/// Each `module: Variant(…)` in these tokens.
fn pairs(tokens: TokenStream, into: &mut Vec<(String, String)>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for four in tokens.windows(4) {
        if let [TokenTree::Ident(module), TokenTree::Punct(colon), TokenTree::Ident(variant), TokenTree::Group(of)] =
            four
            && colon.as_char() == ':'
            && of.delimiter() == Delimiter::Parenthesis
        {
            into.push((module.to_string(), variant.to_string()));
        }
    }
    for token in tokens {
        if let TokenTree::Group(group) = token {
            pairs(group.stream(), into);
        }
    }
}

/// The names that a `use` brings with their paths; no name for all of a path.
fn leaves_of(tree: &UseTree, before: &mut Vec<String>, into: &mut Vec<(Option<String>, Vec<String>)>) {
    let whole = |before: &[String], name: &syn::Ident| match name == "self" {
        true => before.to_vec(),
        false => before.iter().cloned().chain([name.to_string()]).collect(),
    };
    match tree {
        UseTree::Path(it) => {
            before.push(it.ident.to_string());
            leaves_of(&it.tree, before, into);
            before.pop();
        }
        UseTree::Group(it) => it.items.iter().for_each(|tree| leaves_of(tree, before, into)),
        UseTree::Glob(_) => into.push((None, before.clone())),
        UseTree::Name(it) => {
            let path = whole(before, &it.ident);
            into.push((path.last().cloned(), path));
        }
        UseTree::Rename(it) => into.push((Some(it.rename.to_string()), whole(before, &it.ident))),
    }
}
